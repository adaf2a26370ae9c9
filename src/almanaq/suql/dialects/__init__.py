"""What each engine is told: a PostgreSQL tree written so that a query means the same on every one of them."""
