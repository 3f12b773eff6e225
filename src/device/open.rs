//! Opening devices of either driver.

use crate::device::Device;
use crate::driver::gpu::{self, Gpu};
use crate::driver::host::{self, Host};
use crate::error::Result;

/// Opens a GPU device.
///
/// # Errors
/// `NoAdapter` where there is no adapter, or it refuses the device; `LimitExceeded` for options that no device can
/// satisfy.
pub async fn open_gpu(options: gpu::OpenOptions) -> Result<Device<Gpu>> {
    let (dev, runner) = gpu::open::open(options).await?;
    Ok(Device::new(dev, runner, 0))
}

/// Opens a device of the host's memory. It works everywhere.
///
/// # Errors
/// `LimitExceeded` for options that no device can satisfy.
pub fn open_host(options: host::OpenOptions) -> Result<Device<Host>> {
    let (dev, runner) = host::open(&options)?;
    Ok(Device::new(dev, runner, 0))
}
