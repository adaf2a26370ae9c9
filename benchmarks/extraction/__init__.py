"""An extraction over many rows: beside bare clients, through kills, and on the next day."""
