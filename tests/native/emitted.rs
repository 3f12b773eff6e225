//! Generated kernels, on the software adapter with default limits, and those with subgroups with all that it has.

macro_rules! native {
    ($module:ident, $name:ident) => {
        #[test]
        fn $name() {
            pollster::block_on(crate::emit::$module::$name(&crate::open()));
        }
    };
}

crate::emit::emit_tests!(native);

macro_rules! wide {
    ($module:ident, $name:ident) => {
        #[test]
        fn $name() {
            pollster::block_on(crate::emit::$module::$name(&crate::open_wide()));
        }
    };
}

crate::emit::subgroup_tests!(wide);

#[test]
fn without_subgroups_they_are_trees() {
    pollster::block_on(crate::emit::subgroups::without_subgroups_they_are_trees(&crate::open()));
}
