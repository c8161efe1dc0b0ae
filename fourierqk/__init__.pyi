# The one list of what `fourierqk` hands on, each name with its home. Type checkers read it, and so does __init__.py.
from fourierqk.causality import assert_causal as assert_causal
from fourierqk.causality import audit as audit
from fourierqk.combinators import Analytic as Analytic
from fourierqk.combinators import Bank as Bank
from fourierqk.combinators import Causal as Causal
from fourierqk.combinators import PhaseRandomised as PhaseRandomised
from fourierqk.combinators import Residual as Residual
from fourierqk.combinators import SlidingDFT as SlidingDFT
from fourierqk.combinators import Sum as Sum
from fourierqk.combinators import Unit as Unit
from fourierqk.data import shakespeare as shakespeare
from fourierqk.data import text as text
from fourierqk.data import verse as verse
from fourierqk.filters import AllPass as AllPass
from fourierqk.filters import CausalFilter as CausalFilter
from fourierqk.filters import CausalGaussian as CausalGaussian
from fourierqk.filters import CausalMexicanHat as CausalMexicanHat
from fourierqk.filters import CircularFilter as CircularFilter
from fourierqk.filters import Gaussian as Gaussian
from fourierqk.filters import MexicanHat as MexicanHat
from fourierqk.filters import Morlet as Morlet
from fourierqk.filters import MorletCorrelation as MorletCorrelation
from fourierqk.filters import RandomBands as RandomBands
from fourierqk.filters import Tone as Tone
from fourierqk.filters import bins as bins
from fourierqk.filters import period as period
from fourierqk.model import GPT as GPT
from fourierqk.model import GPTConfig as GPTConfig
from fourierqk.model import generate as generate
from fourierqk.training import PRESETS as PRESETS
from fourierqk.training import TrainConfig as TrainConfig
from fourierqk.training import train as train
from fourierqk.zoo import SYSTEMS as SYSTEMS
from fourierqk.zoo import build as build
from fourierqk.zoo import system as system

__version__: str
