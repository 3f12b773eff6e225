//! The devices of the machine and of the process.

use wgslab::{Context, ErrorKind, global_debug_info, gpu, host};

use crate::{ints, open};

#[test]
fn the_machine_says_which_devices_it_has_and_opens_them_by_ordinal() {
    pollster::block_on(async {
        let properties = gpu::static_properties().await;
        assert_eq!(gpu::num_devices().await, properties.len());
        let first = properties.first().expect("a GPU adapter (a software one will do)");
        assert_eq!((first.ordinal, first.limits.alignment_bytes), (0, 256));
        let device = gpu::get_device(0).await.unwrap();
        assert_eq!((device.ordinal(), device.adapter().name.as_str()), (0, first.adapter.name.as_str()));
        let none = gpu::get_device(1000).await.unwrap_err();
        assert_eq!(none.kind(), ErrorKind::NoAdapter);
        assert!(none.to_string().contains("no GPU adapter of ordinal 1000: the machine has"), "{none}");
    });
    assert_eq!((host::num_devices(), host::static_properties().len()), (1, 1));
    let device = host::get_device(0).unwrap();
    let again = host::get_device(0).unwrap();
    assert_eq!(device.device_id(), again.device_id(), "the device that is open");
    device.destroy();
    assert_ne!(host::get_device(0).unwrap().device_id(), device.device_id(), "a lost device is no device");
    assert_eq!(host::get_device(1).unwrap_err().kind(), ErrorKind::NoAdapter);
}

#[test]
fn every_device_of_the_process_tells_its_state() {
    let device = open();
    let x = ints("x", 100);
    let context = Context::root(&device).init_from_host(&x, &[1; 100]).unwrap();
    let seen = |name: &str| global_debug_info().into_iter().find(|info| info.name == name);
    let info = seen(device.name()).expect("the device is there");
    assert_eq!(info.memory.in_use_bytes, device.used_memory());
    assert_eq!(device.used_memory(), 512);
    assert_eq!((info.next_pool_id, info.merge_buffer, info.constant_count), (2, None, 0));
    assert!(info.recorded_seq > 0);
    device.sync().unwrap();
    assert!(device.debug_info().is_idle);
    let name = device.name().to_owned();
    drop((context, device));
    assert!(seen(&name).is_none(), "a device that is gone is not there");
}
