"""Our queries and those of other systems, side by side against one stand-in server."""
