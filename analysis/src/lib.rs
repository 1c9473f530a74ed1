//! In-place, ownership and planning decisions on plain indexed data.
