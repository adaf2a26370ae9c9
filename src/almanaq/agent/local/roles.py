"""What a column is about, by the words of its name."""

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
