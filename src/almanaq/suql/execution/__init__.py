"""Running a plan: SQL stages in the database, text stages with the model."""
