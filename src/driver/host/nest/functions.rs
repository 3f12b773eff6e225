//! The functions of floats: a machine's own, or the page's, which are in the engine anyway: those of Rust's library would
//! be a twentieth of the web build. One of the files that know the target.

macro_rules! functions {
    ($($name:ident $js:ident)*) => {
        $(
            #[cfg(not(target_arch = "wasm32"))]
            pub(super) fn $name(a: f32) -> f32 {
                a.$name()
            }

            #[cfg(target_arch = "wasm32")]
            pub(super) fn $name(a: f32) -> f32 {
                js_sys::Math::$js(f64::from(a)) as f32
            }
        )*
    };
}

functions! {
    exp exp
    ln log
    log2 log2
    ln_1p log1p
    sin sin
    cos cos
    tan tan
    asin asin
    acos acos
    atan atan
    sinh sinh
    cosh cosh
    tanh tanh
}

#[cfg(not(target_arch = "wasm32"))]
mod own {
    pub(in super::super) fn exp2(a: f32) -> f32 {
        a.exp2()
    }

    pub(in super::super) fn exp_wide(a: f64) -> f64 {
        a.exp()
    }

    pub(in super::super) fn pow(a: f32, b: f32) -> f32 {
        a.powf(b)
    }

    pub(in super::super) fn atan2(a: f32, b: f32) -> f32 {
        a.atan2(b)
    }
}

#[cfg(target_arch = "wasm32")]
mod own {
    use js_sys::Math;

    pub(in super::super) fn exp2(a: f32) -> f32 {
        pow(2.0, a)
    }

    pub(in super::super) fn exp_wide(a: f64) -> f64 {
        Math::exp(a)
    }

    pub(in super::super) fn pow(a: f32, b: f32) -> f32 {
        // Of 1, and of -1 to an infinite power, JavaScript makes NaN where IEEE 754 says 1.
        let is_one = a == 1.0 || a == -1.0 && b.is_infinite();
        if is_one { 1.0 } else { Math::pow(f64::from(a), f64::from(b)) as f32 }
    }

    pub(in super::super) fn atan2(a: f32, b: f32) -> f32 {
        Math::atan2(f64::from(a), f64::from(b)) as f32
    }
}

pub(super) use own::*;
