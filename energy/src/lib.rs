//! Watts and joules, pure: readings, integration, margins.
