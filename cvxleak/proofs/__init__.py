"""Certificates: the file format and its independent checker."""

from cvxleak.proofs.bundle import read_certificates, save_certificates
from cvxleak.proofs.checker import Verification, verify
from cvxleak.proofs.format import Certificate

__all__ = ["Certificate", "Verification", "read_certificates", "save_certificates", "verify"]
