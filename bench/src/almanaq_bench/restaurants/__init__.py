"""Restaurants as the SUQL paper asks for them (section 6.2): questions and conversations, judged turn by turn."""
