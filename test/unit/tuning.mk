unit_sources_tuning =
