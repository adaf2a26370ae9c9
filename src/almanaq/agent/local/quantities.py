"""Words of number, comparison and order, and what a column's name says that it holds."""

from __future__ import annotations

from collections.abc import Mapping

from almanaq.agent.local.words import word_set

ROLE_WORDS: Mapping[str, frozenset[str]] = {
    "name": frozenset(["name", "title", "fullname", "label"]),
    "rating": word_set(
        """
    rating star stars score grade
    """
    ),
    "price": word_set(
        """
    price cost fee fare rent amount budget
    """
    ),
    "pay": word_set(
        """
    salary wage pay income earning
    """
    ),
    "revenue": word_set("revenue gross box profit turnover earnings takings income"),
    "city": frozenset(["city", "town", "location"]),
    "job": word_set("job occupation profession position role"),
    "quantity": word_set("quantity qty unit units count"),
    "age": frozenset(["age"]),
    "birth": word_set(
        """
    birth birthday born birthdate dob
    """
    ),
    "year": word_set(
        """
    year date time founded released opened built established created day month since
    """
    ),
    "length": word_set(
        """
    length duration runtime minute hour time page
    """
    ),
    "size": word_set(
        """
    size population area capacity employee surface seat attendance seating
    """
    ),
    "height": frozenset(["height", "elevation", "altitude"]),
    "weight": frozenset(["weight", "mass"]),
    "experience": frozenset(["experience", "seniority"]),
    "worth": frozenset(["value", "worth"]),
    "speed": word_set(
        """
    speed velocity mph kmh horsepower
    """
    ),
    "distance": word_set(
        """
    distance mile km kilometer kilometre
    """
    ),
    "address": word_set(
        """
    address street location venue city
    """
    ),
    "phone": frozenset(["phone", "telephone", "tel", "mobile"]),
    "hours": word_set(
        """
    hours opening hour open schedule
    """
    ),
    "reviews": word_set(
        """
    review reviews vote rating_count comment
    """
    ),
    "email": frozenset(["email", "mail"]),
    "site": frozenset(["website", "url", "site", "homepage"]),
    "dishes": word_set(
        """
    dish dishes menu food item cuisine
    """
    ),
}
"""What a column is about, by the words of its name."""

UNITS: Mapping[str, tuple[str, ...]] = {
    "star": ("rating",),
    "rated": ("rating",),
    "rating": ("rating",),
    "dollar": ("price", "pay"),
    "buck": ("price",),
    "$": ("price", "pay"),
    "€": ("price", "pay"),
    "£": ("price", "pay"),
    "priced": ("price",),
    "cost": ("price",),
    "old": ("age",),
    "older": ("age",),
    "younger": ("age",),
    "aged": ("age",),
    "age": ("age",),
    "minute": ("length",),
    "min": ("length",),
    "hour": ("length",),
    "long": ("length",),
    "longer": ("length",),
    "shorter": ("length",),
    "earn": ("pay",),
    "earning": ("pay",),
    "make": ("pay",),
    "making": ("pay",),
    "paid": ("pay",),
    "item": ("quantity",),
    "piece": ("quantity",),
    "copy": ("quantity",),
    "money": ("pay", "revenue"),
    "people": ("size",),
    "person": ("size",),
    "inhabitant": ("size",),
    "resident": ("size",),
    "seat": ("size",),
    "tall": ("height",),
    "taller": ("height",),
    "heavier": ("weight",),
    "lighter": ("weight",),
    "charge": ("price", "pay"),
    "worth": ("worth", "price"),
    "weigh": ("weight",),
    "mile": ("distance",),
    "km": ("distance",),
    "cheaper": ("price",),
    "pricier": ("price",),
}
"""Words beside a number, and the roles of the columns they speak of, the likeliest first."""

MINUTES = frozenset(("minute", "min", "runtime"))
"""Stems of a column's name that say it counts minutes."""

SUPERLATIVES: Mapping[str, tuple[tuple[str, bool], ...]] = {
    "best": (("rating", True),),
    "greatest": (("rating", True),),
    "top": (("rating", True),),
    "finest": (("rating", True),),
    "top-rated": (("rating", True),),
    "best-rated": (("rating", True),),
    "highest-rated": (("rating", True),),
    "worst": (("rating", False),),
    "lowest-rated": (("rating", False),),
    "cheapest": (("price", False),),
    "priciest": (("price", True),),
    "richest": (("pay", True), ("size", True)),
    "oldest": (("age", True), ("birth", False), ("year", False)),
    "youngest": (("age", False), ("birth", True), ("year", True)),
    "newest": (("year", True),),
    "latest": (("year", True),),
    "earliest": (("year", False),),
    "longest": (("length", True), ("distance", True)),
    "shortest": (("length", False), ("height", False)),
    "largest": (("size", True),),
    "biggest": (("size", True),),
    "smallest": (("size", False),),
    "tallest": (("height", True),),
    "highest": (("height", True), ("rating", True)),
    "lowest": (("height", False), ("rating", False)),
    "heaviest": (("weight", True),),
    "lightest": (("weight", False),),
    "fastest": (("speed", True),),
    "slowest": (("speed", False),),
    "nearest": (("distance", False),),
    "closest": (("distance", False),),
}
"""Superlatives, and (role, descending) of the columns they order by, the likeliest first."""

NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
        ]
    )
} | {"twenty": 20, "thirty": 30, "fifty": 50, "hundred": 100, "dozen": 12}

AT_LEAST, AT_MOST, MORE, LESS, EXACTLY = ">=", "<=", ">", "<", "="
COMPARISONS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("no", "less", "than"), AT_LEAST),
    (("not", "less", "than"), AT_LEAST),
    (("no", "fewer", "than"), AT_LEAST),
    (("no", "more", "than"), AT_MOST),
    (("not", "more", "than"), AT_MOST),
    (("at", "least"), AT_LEAST),
    (("at", "most"), AT_MOST),
    (("minimum", "of"), AT_LEAST),
    (("maximum", "of"), AT_MOST),
    (("up", "to"), AT_MOST),
    (("more", "than"), MORE),
    (("greater", "than"), MORE),
    (("higher", "than"), MORE),
    (("larger", "than"), MORE),
    (("bigger", "than"), MORE),
    (("better", "than"), MORE),
    (("older", "than"), MORE),
    (("longer", "than"), MORE),
    (("taller", "than"), MORE),
    (("heavier", "than"), MORE),
    (("later", "than"), MORE),
    (("less", "than"), LESS),
    (("fewer", "than"), LESS),
    (("lower", "than"), LESS),
    (("smaller", "than"), LESS),
    (("cheaper", "than"), LESS),
    (("younger", "than"), LESS),
    (("shorter", "than"), LESS),
    (("earlier", "than"), LESS),
    (("over",), MORE),
    (("above",), MORE),
    (("exceeding",), MORE),
    (("after",), MORE),
    (("since",), AT_LEAST),
    (("from",), AT_LEAST),
    (("under",), LESS),
    (("below",), LESS),
    (("before",), LESS),
    (("within",), AT_MOST),
    (("until",), AT_MOST),
    (("exactly",), EXACTLY),
    (("only",), EXACTLY),
    ((">=",), AT_LEAST),
    (("<=",), AT_MOST),
    ((">",), MORE),
    (("<",), LESS),
    (("=",), EXACTLY),
)
"""Words before a number and the comparison they make; longer ones first."""

COMPARISONS_AFTER: tuple[tuple[tuple[str, ...], str], ...] = (
    (("or", "more"), AT_LEAST),
    (("or", "higher"), AT_LEAST),
    (("or", "above"), AT_LEAST),
    (("or", "better"), AT_LEAST),
    (("or", "over"), AT_LEAST),
    (("or", "older"), AT_LEAST),
    (("and", "above"), AT_LEAST),
    (("and", "up"), AT_LEAST),
    (("or", "less"), AT_MOST),
    (("or", "fewer"), AT_MOST),
    (("or", "lower"), AT_MOST),
    (("or", "below"), AT_MOST),
    (("or", "under"), AT_MOST),
    (("or", "cheaper"), AT_MOST),
    (("or", "younger"), AT_MOST),
    (("or", "later"), AT_LEAST),
    (("or", "newer"), AT_LEAST),
    (("or", "after"), AT_LEAST),
    (("and", "later"), AT_LEAST),
    (("or", "earlier"), AT_MOST),
    (("or", "before"), AT_MOST),
    (("onwards",), AT_LEAST),
    (("onward",), AT_LEAST),
)
"""Words after a number and the comparison they make."""

AGGREGATES: Mapping[str, str] = {
    "average": "AVG",
    "mean": "AVG",
    "avg": "AVG",
    "maximum": "MAX",
    "minimum": "MIN",
    "max": "MAX",
    "min": "MIN",
    "sum": "SUM",
    "total": "SUM",
}
GROUPING: tuple[tuple[str, ...], ...] = (
    ("for", "each"),
    ("in", "each"),
    ("of", "each"),
    ("for", "every"),
    ("in", "every"),
    ("of", "every"),
    ("each",),
    ("per",),
    ("by",),
    ("every",),
)
