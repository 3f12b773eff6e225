// wgslab: GPU compute for array programs. A device, contexts that say which tensor is where, programs and kernels that are
// compiled once and linked into a context, and an event for every piece of queued work.

export { Device, globalDebugInfo, type CompileOptions, type DriverOptions, type GpuDeviceLike, type OpenOptions } from "./device.ts";
export { Context, type ArraysOf, type Landing } from "./context.ts";
export type { AxisRange, BlockRanges, CopyRange, ElementRange } from "./ranges.ts";
export { TensorNode, type MemoryMode, type NodeOptions, type ViewOptions } from "./node.ts";
export { Code } from "./code.ts";
export { OptimizeCtx, type CompileIn } from "./optimize-ctx.ts";
export type { Access, Kernel, KernelSpec, KernelTensor, NamedTensor } from "./kernel.ts";
export type { Program, ProgramSpec } from "./program.ts";
export { Routine, type ExecutionDep, type Statics } from "./routine.ts";
export { Sequence, type ReplayOptions, type SequenceStep } from "./sequence.ts";
export { DeviceEvent } from "./event.ts";
export { ERROR_CODES, KernelError, NotationError, WgslabError, type Diagnostic, type ErrorCode } from "./errors.ts";
export type { ArrayOf, ArrayTypes, DataOf, DType, Float16Data, TensorArray } from "./arrays.ts";
export { forgetTuned } from "./tuned.ts";
export type { WasmSource } from "./init.ts";
export type {
  AdapterInfo,
  BufferLoc,
  Compaction,
  DebugInfo,
  DeviceLimits,
  DeviceLostInfo,
  Forecast,
  MemoryReport,
  NodeReport,
  PoolReport,
  RunnerStats,
  StaticProperties,
} from "./info.ts";
