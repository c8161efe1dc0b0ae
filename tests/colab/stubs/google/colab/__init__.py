"""A stand-in for Colab's own package: the part that the notebooks call."""
from google.colab import output as output
