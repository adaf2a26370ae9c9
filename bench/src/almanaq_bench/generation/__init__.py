"""What replies after the retrieval: contexts, generators, their replies on disk, and how well they do."""
