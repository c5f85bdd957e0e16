//! Meter drivers and the sampler.
