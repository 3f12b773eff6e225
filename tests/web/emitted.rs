//! Generated kernels in the browser.

use wasm_bindgen_test::wasm_bindgen_test;
use wgslab::gpu::LimitsChoice;

macro_rules! web {
    ($module:ident, $name:ident) => {
        #[wasm_bindgen_test]
        async fn $name() {
            crate::emit::$module::$name(&crate::open(LimitsChoice::Default).await).await;
        }
    };
}

crate::emit::emit_tests!(web);

macro_rules! wide {
    ($module:ident, $name:ident) => {
        #[wasm_bindgen_test]
        async fn $name() {
            crate::emit::$module::$name(&crate::open(LimitsChoice::Adapter).await).await;
        }
    };
}

crate::emit::subgroup_tests!(wide);

#[wasm_bindgen_test]
async fn without_subgroups_they_are_trees() {
    crate::emit::subgroups::without_subgroups_they_are_trees(&crate::open(LimitsChoice::Default).await).await;
}
