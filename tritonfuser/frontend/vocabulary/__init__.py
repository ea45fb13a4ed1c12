"""nvFuser's enumerations and option names, source locations, literals, units."""
