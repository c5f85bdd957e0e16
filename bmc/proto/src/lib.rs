//! Out of band, pure: RMCP+ and IPMI codecs and sessions.
