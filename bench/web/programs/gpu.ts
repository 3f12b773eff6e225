// WebGPU itself: kernels of bench/kernels, their constants in front of them, on a device with the adapter's limits.

import attention_flash from "../../kernels/attention_flash.wgsl";
import chain from "../../kernels/chain.wgsl";
import conv2d from "../../kernels/conv2d.wgsl";
import gather from "../../kernels/gather.wgsl";
import layer_norm_rows from "../../kernels/layer_norm_rows.wgsl";
import layer_norm_workgroup from "../../kernels/layer_norm_workgroup.wgsl";
import matmul_nt_registers from "../../kernels/matmul_nt_registers.wgsl";
import matmul_registers from "../../kernels/matmul_registers.wgsl";
import matmul_workgroup from "../../kernels/matmul_workgroup.wgsl";
import mlp_hidden from "../../kernels/mlp_hidden.wgsl";
import mlp_hidden_grad from "../../kernels/mlp_hidden_grad.wgsl";
import mlp_output from "../../kernels/mlp_output.wgsl";
import mlp_update from "../../kernels/mlp_update.wgsl";
import peak_arithmetic from "../../kernels/peak_arithmetic.wgsl";
import peak_copy from "../../kernels/peak_copy.wgsl";
import softmax_rows from "../../kernels/softmax_rows.wgsl";
import softmax_workgroup from "../../kernels/softmax_workgroup.wgsl";
import sum from "../../kernels/sum.wgsl";
import sum_registers from "../../kernels/sum_registers.wgsl";
import type { Dispatch } from "./rows.ts";

const KERNELS: Readonly<Record<string, string>> = {
  attention_flash, chain, conv2d, gather, layer_norm_rows, layer_norm_workgroup, matmul_nt_registers, matmul_registers,
  matmul_workgroup, mlp_hidden, mlp_hidden_grad, mlp_output, mlp_update, peak_arithmetic, peak_copy, softmax_rows,
  softmax_workgroup, sum, sum_registers,
};

/** A kernel with what it works on. */
export interface Step {
  pipeline: GPUComputePipeline;
  bindings: GPUBindGroup;
  groups: readonly [number, number, number];
}

/** A device of its own. */
export class Gpu {
  private constructor(readonly device: GPUDevice) {}

  static async open(): Promise<Gpu> {
    const adapter = await navigator.gpu.requestAdapter();
    if (!adapter) throw new Error("bench: no WebGPU adapter");
    const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
    return new Gpu(await adapter.requestDevice({ requiredLimits: { maxBufferSize, maxStorageBufferBindingSize } }));
  }

  /** A storage buffer of that many elements of four bytes, at least one. */
  buffer(length: number, data?: Float32Array<ArrayBuffer> | Int32Array<ArrayBuffer>): GPUBuffer {
    const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
    const buffer = this.device.createBuffer({ size: Math.max(length, 1) * 4, usage });
    if (data) this.device.queue.writeBuffer(buffer, 0, data);
    return buffer;
  }

  /** A kernel over buffers. */
  async step(dispatch: Dispatch, buffers: Readonly<Record<string, GPUBuffer>>): Promise<Step> {
    const { kernel, constants, tensors, groups } = dispatch;
    const declared = Object.entries(constants).map(([name, value]) => `const ${name} = ${value};\n`);
    const module = this.device.createShaderModule({ code: declared.join("") + KERNELS[kernel]! });
    const { messages } = await module.getCompilationInfo();
    const wrong = messages.find(({ type }) => type === "error");
    if (wrong) throw new Error(`bench/kernels/${kernel}.wgsl:${wrong.lineNum - declared.length}: ${wrong.message}`);
    const pipeline = await this.device.createComputePipelineAsync({ layout: "auto", compute: { module } });
    const entries = tensors.map((name, binding) => ({ binding, resource: { buffer: buffers[name]! } }));
    const bindings = this.device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    return { pipeline, bindings, groups };
  }

  /** Runs steps in order, all of them that often, until the device is done. */
  async run(steps: readonly Step[], count: number): Promise<void> {
    const encoder = this.device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    for (let turn = 0; turn < count; turn += 1) {
      for (const { pipeline, bindings, groups } of steps) {
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, bindings);
        pass.dispatchWorkgroups(...groups);
      }
    }
    pass.end();
    this.device.queue.submit([encoder.finish()]);
    await this.device.queue.onSubmittedWorkDone();
  }

  /** The floats of a buffer. */
  async read(buffer: GPUBuffer): Promise<Float32Array> {
    const { size } = buffer;
    const staging = this.device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, 0, staging, 0, size);
    this.device.queue.submit([encoder.finish()]);
    await staging.mapAsync(GPUMapMode.READ);
    const copy = new Float32Array(staging.getMappedRange().slice(0));
    staging.destroy();
    return copy;
  }
}
