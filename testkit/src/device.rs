//! Environment variables for device tests, and how they are skipped.

/// Whether a missing adapter is a failure (`REQUIRE_GPU=1`).
pub fn gpu_is_required() -> bool {
    std::env::var_os("REQUIRE_GPU").is_some_and(|v| v == "1")
}

/// Whether the long suites run in full (`MONOPOUR_TEST_FULL=1`).
pub fn full_is_asked_for() -> bool {
    std::env::var_os("MONOPOUR_TEST_FULL").is_some_and(|v| v == "1")
}

/// Reports that a device test is skipped.
///
/// # Panics
/// When `REQUIRE_GPU=1` forbids that.
pub fn skip_without_adapter(why: &str) {
    assert!(!gpu_is_required(), "REQUIRE_GPU=1, but there is no adapter: {why}");
    println!("skipped: no adapter ({why})");
}
