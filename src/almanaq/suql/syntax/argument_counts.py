"""How many arguments functions take: the parser drops those that are too many, and lets some that are missing pass."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot.tokenizer_core import Token, TokenType

from almanaq.errors import QuerySyntaxError

T = TokenType
_COUNTS = {
    0: "current_date gen_random_uuid now pi random row_number",
    1: """
        abs acos acosh any_value array_agg ascii asin asinh atan atanh avg bit_and bit_length bit_or bit_xor bool_and
        bool_or cbrt ceil ceiling char_length character_length chr cos cosh cot count current_time current_timestamp
        date day degrees exp factorial first_value floor initcap json_agg json_strip_nulls justify_days justify_hours
        justify_interval last_value ln localtime localtimestamp log10 lower max md5 median min mode month ntile
        percentile_cont percentile_disc quarter radians reverse sha256 sha384 sha512 sign sin sinh sqrt stddev
        stddev_pop stddev_samp sum tan tanh to_hex upper var_pop var_samp variance year
    """,
    2: """
        array_any array_append array_cat array_length array_prepend array_remove atan2 btrim corr covar_pop covar_samp
        date_part decode div encode get_bit group_concat ifnull instr json_object_agg jsonb_object_agg left length
        log ltrim mod normalize nth_value nullif nvl position pow power regr_avgx regr_avgy regr_count regr_intercept
        regr_r2 regr_slope regr_sxx regr_sxy regr_syy repeat right round rtrim starts_with string_agg strpos to_char
        to_date to_number to_timestamp trim trunc
    """,
    3: """
        arg_max arg_min array_position array_to_string date_bin date_trunc generate_series if iif lag lead lpad
        make_time regexp_like replace rpad split_part string_to_array substr substring translate
    """,
    4: "overlay regexp_count width_bucket",
    6: "make_timestamp regexp_replace regexp_substr",
    7: "make_interval regexp_instr",
}
_LEAST = {"date": 1, "split_part": 3}
"""Of functions whose missing arguments nobody else tells of."""
_MOST: Mapping[str, int] = {name: count for count, names in _COUNTS.items() for name in names.split()}
_OPENING = (T.L_PAREN, T.L_BRACKET)
_CLOSING = (T.R_PAREN, T.R_BRACKET)


def check_counts(tokens: list[Token], text: str) -> None:
    """Raise QuerySyntaxError where a function is given more arguments than it takes, or too few; point at its name."""
    opened: list[list[int]] = []  # of each parenthesis: its function's place, or -1, its commas, what it takes
    for i, token in enumerate(tokens):
        kind = token.token_type
        if kind in _OPENING:
            takes = _MOST.get(tokens[i - 1].text.lower()) if i and kind == T.L_PAREN else None
            opened.append([-1, 0, 0] if takes is None else [i - 1, 0, takes])
        elif kind == T.COMMA and opened:
            opened[-1][1] += 1
        elif kind == T.ORDER_BY and opened and opened[-1][1] < max(1, opened[-1][2]):
            opened[-1][0] = -1  # what follows are keys
        elif kind in _CLOSING and opened:
            name, commas, most = opened.pop()
            given = commas + 1 if tokens[i - 1].token_type != T.L_PAREN else 0
            least = _LEAST.get(tokens[name].text.lower(), 0) if name >= 0 else 0
            if name >= 0 and given > most:
                _refuse(tokens[name], given, "no argument" if most == 0 else f"at most {_arguments(most)}", text)
            if given < least:
                _refuse(tokens[name], given, f"at least {_arguments(least)}", text)


def _arguments(number: int) -> str:
    return f"{number} argument{'s' if number > 1 else ''}"


def _refuse(name: Token, given: int, takes: str, text: str) -> None:
    message = f"{name.text.lower()} takes {takes}; {given} {'is' if given == 1 else 'are'} given"
    raise QuerySyntaxError(message, query=text, start=name.start, end=name.end)
