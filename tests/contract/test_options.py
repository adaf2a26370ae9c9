"""Options are declared once: every surface has those that the schema gives it."""

from __future__ import annotations

import inspect
from decimal import Decimal

import numpy
import pytest

import almanaq
from almanaq.errors import UsageError
from almanaq.options import CONNECTION_OPTIONS, OPTIONS, QUERY_OPTIONS, Options
from almanaq.settings import Settings


def test_the_arguments_of_connect_are_the_options():
    parameters = dict(inspect.signature(almanaq.connect).parameters)
    del parameters["source"], parameters["options"]
    assert list(parameters) == list(OPTIONS)
    for name, option in OPTIONS.items():
        assert parameters[name].annotation.replace("'", '"') == option.argument_type
        assert parameters[name].default == (option.default if option in CONNECTION_OPTIONS else None)
        assert f"\n        {name}: " in str(almanaq.connect.__doc__)


def test_every_option_of_queries_is_a_field_with_its_default():
    for option in QUERY_OPTIONS:
        assert getattr(Options(), option.name) == option.default
        assert f"\n        {option.name}: " in str(Options.__doc__)


def test_every_setting_that_is_an_option_has_its_default():
    for name, option in OPTIONS.items():
        assert option.is_set_by("setting") == (name in Settings.model_fields)
        if option.is_set_by("setting") and name != "model":
            assert Settings.model_fields[name].default == option.default


@pytest.mark.parametrize("name", [option.name for option in QUERY_OPTIONS if option.least or option.above is not None])
def test_a_number_below_its_range_is_refused_everywhere(name):
    option = OPTIONS[name]
    wrong = (option.above if option.above is not None else option.least - 1) or 0
    with pytest.raises(UsageError, match=name):
        almanaq.connect({"t": {"a": [1]}}, **{name: wrong})


OF_NO_TYPE = object()


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in ("model", "embedder", "batch")])
def test_a_value_of_no_type_of_an_option_is_refused_everywhere(name):
    for wrong in (OF_NO_TYPE, "5" if OPTIONS[name].python_type is not str else OF_NO_TYPE):
        with pytest.raises(UsageError, match=name):
            almanaq.connect({"t": {"a": [1]}}, **{name: wrong})
        if name in {option.name for option in QUERY_OPTIONS}:
            with pytest.raises(UsageError, match=name):
                Options(**{name: wrong})


def test_numbers_of_other_libraries_are_numbers():
    assert Options(max_calls=numpy.int64(5), deadline=numpy.float32(2), max_money=Decimal(1)).max_calls == 5


def test_bounds_lower_and_never_raise():
    assert Options(max_calls=5, deadline=None).within(max_calls=9, deadline=3.0).max_calls == 5
    assert Options().within(max_rows=None).max_rows is None
    assert Options(max_calls=None).within(max_calls=0).max_calls == 0
