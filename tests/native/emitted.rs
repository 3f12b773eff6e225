//! Generated kernels, on the software adapter with default limits.

macro_rules! native {
    ($module:ident, $name:ident) => {
        #[test]
        fn $name() {
            pollster::block_on(crate::emit::$module::$name(&crate::open()));
        }
    };
}

crate::emit::emit_tests!(native);
