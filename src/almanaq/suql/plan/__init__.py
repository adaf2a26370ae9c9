"""Plans: a query as stages, SQL ones for the database and text ones for the model."""
