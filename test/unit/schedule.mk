unit_sources_schedule =
