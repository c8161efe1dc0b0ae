# The one list of what `fourierqk` hands on, each name with its home. Type checkers read it, and so does __init__.py.
from fourierqk.causality import assert_causal as assert_causal
from fourierqk.causality import audit as audit
from fourierqk.combinators import Causal as Causal
from fourierqk.combinators import Unit as Unit
from fourierqk.data import shakespeare as shakespeare
from fourierqk.data import text as text
from fourierqk.data import verse as verse
from fourierqk.filters import AllPass as AllPass
from fourierqk.filters import CausalFilter as CausalFilter
from fourierqk.filters import CircularFilter as CircularFilter
from fourierqk.filters import Gaussian as Gaussian
from fourierqk.filters import Morlet as Morlet
from fourierqk.filters import Tone as Tone
from fourierqk.filters import bins as bins
from fourierqk.filters import period as period
from fourierqk.model import GPT as GPT
from fourierqk.model import GPTConfig as GPTConfig
from fourierqk.model import generate as generate
from fourierqk.training import PRESETS as PRESETS
from fourierqk.training import TrainConfig as TrainConfig
from fourierqk.training import load as load
from fourierqk.training import train as train
from fourierqk.zoo import SYSTEMS as SYSTEMS
from fourierqk.zoo import build as build
from fourierqk.zoo import system as system

__version__: str
