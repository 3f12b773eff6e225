// The same work on WebGPU itself, written as an expert would for this one case: what the ratios compare with.

const SLOT_BYTES = 256;

const SCALE_WGSL = `
struct Params { factor: f32 }
@group(0) @binding(0) var<storage, read_write> data: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < arrayLength(&data)) { data[id.x] = data[id.x] * params.factor; }
}`;

/** A second device of the same adapter, with nothing between it and this file. */
export class Raw {
  private constructor(private readonly device: GPUDevice) {}

  static async open(): Promise<Raw> {
    const adapter = await navigator.gpu.requestAdapter();
    if (!adapter) throw new Error("bench: no WebGPU adapter");
    return new Raw(await adapter.requestDevice());
  }

  /** `count` dispatches in one pass, each with parameters of its own by a dynamic offset; one write, one submit. */
  async recorder(elements: number, count: number): Promise<() => Promise<{ record: number; total: number }>> {
    const { device } = this;
    const { COMPUTE } = GPUShaderStage;
    const layout = device.createBindGroupLayout({
      entries: [
        { binding: 0, visibility: COMPUTE, buffer: { type: "storage" } },
        { binding: 1, visibility: COMPUTE, buffer: { type: "uniform", hasDynamicOffset: true, minBindingSize: 16 } },
      ],
    });
    const pipeline = await device.createComputePipelineAsync({
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      compute: { module: device.createShaderModule({ code: SCALE_WGSL }) },
    });
    const data = this.buffer(elements * 4);
    const ring = device.createBuffer({
      size: count * SLOT_BYTES,
      usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
    });
    const group = device.createBindGroup({
      layout,
      entries: [
        { binding: 0, resource: { buffer: data } },
        { binding: 1, resource: { buffer: ring, size: SLOT_BYTES } },
      ],
    });
    const params = new Float32Array((count * SLOT_BYTES) / 4);
    return async () => {
      const start = performance.now();
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      for (let run = 0; run < count; run += 1) {
        params[(run * SLOT_BYTES) / 4] = 1;
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group, [run * SLOT_BYTES]);
        pass.dispatchWorkgroups(Math.ceil(elements / 64));
      }
      const record = performance.now() - start;
      pass.end();
      device.queue.writeBuffer(ring, 0, params);
      device.queue.submit([encoder.finish()]);
      await device.queue.onSubmittedWorkDone();
      return { record, total: performance.now() - start };
    };
  }

  /** Writes into a buffer and waits until the queue has taken it. */
  uploader(data: Float32Array<ArrayBuffer>): () => Promise<number> {
    const target = this.buffer(data.byteLength);
    return async () => {
      const start = performance.now();
      this.device.queue.writeBuffer(target, 0, data);
      this.device.queue.submit([]);
      await this.device.queue.onSubmittedWorkDone();
      return performance.now() - start;
    };
  }

  /** Reads a buffer into a fresh array, through one staging buffer that is kept. */
  reader(bytes: number): () => Promise<number> {
    const { device } = this;
    const source = this.buffer(bytes);
    const staging = device.createBuffer({ size: bytes, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    return async () => {
      const start = performance.now();
      const encoder = device.createCommandEncoder();
      encoder.copyBufferToBuffer(source, 0, staging, 0, bytes);
      device.queue.submit([encoder.finish()]);
      await staging.mapAsync(GPUMapMode.READ);
      const copy = new Float32Array(staging.getMappedRange().slice(0));
      staging.unmap();
      if (copy.byteLength !== bytes) throw new Error("bench: short readback");
      return performance.now() - start;
    };
  }

  /** One buffer per tensor, as libraries without slabs do: until the calls returned, and until the browser did them. */
  async createAndDestroy(cycles: number, count: number, bytes: number): Promise<{ calls: number; done: number }> {
    const start = performance.now();
    for (let cycle = 0; cycle < cycles; cycle += 1) {
      const buffers = Array.from({ length: count }, () => this.buffer(bytes));
      for (const buffer of buffers) buffer.destroy();
    }
    const calls = performance.now() - start;
    await this.device.queue.onSubmittedWorkDone();
    return { calls, done: performance.now() - start };
  }

  private buffer(size: number): GPUBuffer {
    return this.device.createBuffer({
      size,
      usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
    });
  }
}
