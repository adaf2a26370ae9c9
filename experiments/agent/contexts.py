"""The sources and earlier turns in which the turns of `turns.toml` stand."""

from __future__ import annotations

import pyarrow as pa

from almanaq.agent.history import Shown, Turn

FILMS = {
    "films": pa.table(
        {
            "film_id": [1, 2, 3, 4],
            "title": ["Northern Light", "Paper Moons", "The Cellar", "Salt"],
            "genre": ["drama", "comedy", "horror", "documentary"],
            "release_year": [1999, 2008, 2015, 2020],
            "runtime_minutes": [121, 95, 88, 70],
            "director_id": [1, 2, 2, 3],
            "plot": [
                "Two sisters cross a frozen lake to find their father, whom they have not seen for twenty years.",
                "A mailman opens letters that are not his, and answers them one by one until somebody comes.",
                "Something lives below the house, and it knows the names of all the children who ever slept there.",
                "Workers harvest salt by hand on the last coast where that is done, and tell of their lives.",
            ],
        }
    ),
    "directors": pa.table(
        {
            "director_id": [1, 2, 3],
            "name": ["Ada Lind", "Ben Ortiz", "Chika Mori"],
            "country": ["Sweden", "Mexico", "Japan"],
        }
    ),
    "awards": pa.table(
        {"award_id": [1, 2, 3], "film_id": [1, 1, 2], "award_name": ["Golden Bear", "Critics Prize", "Audience Prize"]}
    ),
}
STAFF = {
    "employees": pa.table(
        {
            "emp_id": [1, 2, 3, 4],
            "full_name": ["Ines Duarte", "Tom Baker", "Wei Zhang", "Lena Fox"],
            "salary": [82000, 61000, 97000, 55000],
            "age": [41, 29, 52, 25],
            "job_title": ["Engineer", "Analyst", "Engineer", "Designer"],
            "is_remote": [True, False, False, True],
            "dept_id": [1, 2, 1, 3],
            "bio": [
                "She speaks Spanish and climbs, and has written half of the software that the department lives on.",
                "He led the audit in 2021 and has been asked to lead the next one, which he would rather not do.",
                "She mentors juniors, speaks Mandarin and Spanish, and can be found in the laboratory until late.",
                "She paints, and does the posters, the web pages and whatever else has to look as it should look.",
            ],
        }
    ),
    "departments": pa.table(
        {
            "dept_id": [1, 2, 3],
            "dept_name": ["Research", "Finance", "Marketing"],
            "city": ["Berlin", "Madrid", "Berlin"],
        }
    ),
}
SOURCES = {"r": "sample:restaurants", "f": FILMS, "s": STAFF}
BEFORE = {
    "r": Turn(
        "Which Italian restaurants in Palo Alto are romantic?",
        "SELECT name, cuisines, location, rating, price FROM restaurants WHERE 'italian' = ANY(cuisines)"
        " AND location = 'Palo Alto' AND answer(reviews, 'is this restaurant romantic?') = 'Yes' LIMIT 3",
        shown=Shown("restaurants", ("id",), ((11,), (47,), (102,)), ("One", "Two", "Three")),
    ),
    "f": Turn(
        "dramas and comedies from before 2016",
        "SELECT title, genre, release_year FROM films WHERE genre IN ('drama', 'comedy') AND release_year < 2016",
        shown=Shown("films", ("title",), (("Northern Light",), ("Paper Moons",)), ("Northern Light", "Paper Moons")),
    ),
    "s": Turn(
        "Which engineers work in Berlin?",
        "SELECT full_name FROM employees WHERE job_title = 'Engineer'"
        " AND dept_id IN (SELECT dept_id FROM departments WHERE city = 'Berlin')",
        shown=Shown("employees", ("full_name",), (("Ines Duarte",), ("Wei Zhang",)), ("Ines Duarte", "Wei Zhang")),
    ),
}
