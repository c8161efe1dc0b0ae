"""Texts as token ids, and their rhythms."""
from fourierqk.data.corpus import Corpus, shakespeare, text, verse
from fourierqk.data.spectrum import Peak, Spectrum, recorded_spectra, text_spectrum

__all__ = ["Corpus", "Peak", "Spectrum", "recorded_spectra", "shakespeare", "text", "text_spectrum", "verse"]
