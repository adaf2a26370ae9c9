"""A model server of the OpenAI protocol that stands in for real ones: deterministic, counted, with faults."""

from almanaq_bench.testing.faults import Faults
from almanaq_bench.testing.read_requests import replies_from
from almanaq_bench.testing.stand_in_server import Ledger, StandInServer

__all__ = ["Faults", "Ledger", "StandInServer", "replies_from"]
