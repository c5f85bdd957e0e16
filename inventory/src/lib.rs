//! The book of record: nodes, switches, sightings, facts and samples; the only SQL.
