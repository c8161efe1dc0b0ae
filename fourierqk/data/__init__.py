"""Texts as token ids, and their rhythms."""
from fourierqk.data.corpus import Corpus, check_corpus, metre, shakespeare, text, verse
from fourierqk.data.spectrum import Peak, Spectrum, recorded_spectra, text_spectrum
from fourierqk.data.tasks import TASKS, task

__all__ = [
    "Corpus", "Peak", "Spectrum", "TASKS", "check_corpus", "metre", "recorded_spectra", "shakespeare", "task", "text",
    "text_spectrum", "verse",
]  # fmt: skip
