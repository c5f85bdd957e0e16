//! What must not compile.

#[test]
fn a_destructive_verb_without_a_permit_and_a_command_before_rakp_4_do_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/compile/*.rs");
}
