"""The causality audit: does a model's output at position t depend on tokens after t?"""
from fourierqk.causality.procedure import Audit, assert_causal, audit

__all__ = ["Audit", "assert_causal", "audit"]
