unit_sources_engine =
