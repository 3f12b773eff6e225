//! Opening devices of either driver.

use crate::device::Device;
use crate::device::registry::{StaticProperties, find, share};
use crate::driver::Driver;
use crate::driver::gpu::{self, Gpu};
use crate::driver::host::{self, Host};
use crate::error::{Error, ErrorKind, Result};

/// Opens a GPU device.
///
/// # Errors
/// `NoAdapter` where there is no adapter, or it refuses the device; `LimitExceeded` for options that no device can
/// satisfy.
pub async fn open_gpu(options: gpu::OpenOptions) -> Result<Device<Gpu>> {
    let ordinal = options.ordinal.unwrap_or(0);
    let (dev, runner) = gpu::open::open(options, None).await?;
    Ok(Device::new(dev, runner, ordinal))
}

/// What the GPU adapters of the machine are and can do, by ordinal. A browser shows one.
pub async fn gpu_static_properties() -> Vec<StaticProperties> {
    let mut found = Vec::new();
    for (adapter, limits) in gpu::open::adapters().await {
        let (limits, _) = gpu::open::device_limits(limits, None);
        found.push(StaticProperties { ordinal: found.len() as u32, adapter, limits });
    }
    found
}

/// How many GPU adapters the machine has, software ones included.
pub async fn gpu_num_devices() -> usize {
    gpu::open::adapters().await.len()
}

/// The device of the adapter with that ordinal that all who ask here share; opened with default options, and gone when the
/// last of them lets go.
///
/// # Errors
/// As [`open_gpu`].
pub async fn gpu_device(ordinal: u32) -> Result<Device<Gpu>> {
    match find(ordinal) {
        Some(device) => Ok(device),
        None => open_gpu(gpu::OpenOptions { ordinal: Some(ordinal), ..gpu::OpenOptions::default() }).await.map(share),
    }
}

/// Opens a device of the host's memory. It works everywhere.
///
/// # Errors
/// `LimitExceeded` for options that no device can satisfy.
pub fn open_host(options: host::OpenOptions) -> Result<Device<Host>> {
    let (dev, runner) = host::open(&options)?;
    Ok(Device::new(dev, runner, 0))
}

/// What the host is and can do.
pub fn host_static_properties() -> Vec<StaticProperties> {
    let properties = |(dev, _)| {
        let (adapter, limits) = (Host::adapter(&dev).clone(), Host::limits(&dev).clone());
        StaticProperties { ordinal: 0, adapter, limits }
    };
    host::open(&host::OpenOptions::default()).map(properties).into_iter().collect()
}

/// How many devices the host driver has: the host.
pub fn host_num_devices() -> usize {
    1
}

/// The host device that all who ask here share; opened with default options, and gone when the last of them lets go.
///
/// # Errors
/// `NoAdapter` for another ordinal than 0.
pub fn host_device(ordinal: u32) -> Result<Device<Host>> {
    if ordinal != 0 {
        let message = format_args!("the host driver has one device, of ordinal 0, not {ordinal}; use 0");
        return Err(Error::say(ErrorKind::NoAdapter, message));
    }
    find(ordinal).map_or_else(|| open_host(host::OpenOptions::default()).map(share), Ok)
}
