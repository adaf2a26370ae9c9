"""The compiler on one screen: parse, bind, plan, optimize, execute."""
