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
