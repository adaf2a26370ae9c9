"""Fakes for tests of code that uses almanaq: deterministic, counted, offline."""

from almanaq.testing.faults import Faults
from almanaq.testing.function_model import FunctionModel
from almanaq.testing.read_requests import replies_from
from almanaq.testing.scripted_model import ScriptedModel
from almanaq.testing.stand_in_server import Ledger, StandInServer

__all__ = ["Faults", "FunctionModel", "Ledger", "ScriptedModel", "StandInServer", "replies_from"]
