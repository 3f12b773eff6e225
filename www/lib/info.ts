// What a device says about itself: plain records.

/** The adapter behind a device. */
export interface AdapterInfo {
  /** Its name, as the driver gives it. */
  readonly name: string;
  /** The API it is reached through, for example `webgpu`; `host` for plain memory. */
  readonly backend: string;
  /** The driver beneath, empty where unknown. */
  readonly driver: string;
  /** Discrete, integrated, software and so on. */
  readonly deviceType: string;
}

/** The limits of a device that array programs meet. */
export interface DeviceLimits {
  /** The most bytes of one slab, and so of one node. */
  readonly segmentCapBytes: number;
  /** Every node starts at a multiple of this many bytes. */
  readonly alignmentBytes: number;
  /** Storage buffers that one kernel can bind. */
  readonly storageBuffers: number;
  /** The most workgroups along each axis of a grid. */
  readonly workgroupsPerDimension: number;
  /** The most invocations of one workgroup. */
  readonly invocationsPerWorkgroup: number;
  /** The most bytes of the variables that one workgroup shares. */
  readonly workgroupStorageBytes: number;
  /** The most bytes of a uniform binding. */
  readonly uniformBindingBytes: number;
  /** Whether kernels may use subgroup operations, `subgroup_id` and `num_subgroups` among them. */
  readonly hasSubgroups: boolean;
}

/** A node's range in its pool. */
export interface NodeReport {
  /** The node's label. */
  readonly label: string;
  /** Bytes from the start of the pool. */
  readonly offset: number;
  /** Bytes of its elements, without padding. */
  readonly sizeBytes: number;
}

/** One pool. */
export interface PoolReport {
  /** The pool's id. */
  readonly poolId: number;
  /** Bytes of its slab. */
  readonly sizeBytes: number;
  /** Bytes of it that no node uses. */
  readonly paddingBytes: number;
  /** The nodes in it, by offset. */
  readonly nodes: readonly NodeReport[];
}

/** All memory of one device. */
export interface MemoryReport {
  /** Bytes taken from the driver for tensors. */
  readonly reservedBytes: number;
  /** Buffers that hold them. */
  readonly heapCount: number;
  /** Bytes of all slabs. */
  readonly inUseBytes: number;
  /** Bytes of slabs that no node uses. */
  readonly paddingBytes: number;
  /** The largest `inUseBytes` since the device was opened. */
  readonly peakBytes: number;
  /** Bytes of staging buffers for uploads and readbacks. */
  readonly stagingBytes: number;
  /** Every pool, by id. */
  readonly pools: readonly PoolReport[];
}

/** What the runner has done since the device was opened. */
export interface RunnerStats {
  /** Batches given to the queue. */
  readonly submissions: number;
  /** Compute passes. */
  readonly passes: number;
  /** Kernels run. */
  readonly dispatches: number;
  /** Uploads of a node or a range. */
  readonly uploads: number;
  /** Copies on the device. */
  readonly copies: number;
  /** Ranges filled with zeros. */
  readonly zeros: number;
  /** Readbacks asked for. */
  readonly readbacks: number;
  /** Mappings that served them. */
  readonly maps: number;
  /** WebGPU buffers made. */
  readonly buffersCreated: number;
  /** Bind groups made. */
  readonly bindGroupsCreated: number;
  /** Pipelines made. */
  readonly pipelinesCreated: number;
}

/** What a compaction did. */
export interface Compaction {
  /** Bytes of slabs that were copied to another place. */
  readonly movedBytes: number;
  /** Bytes given back to the system. */
  readonly freedBytes: number;
}

/** What a device does not change: one for each device of a driver that there is. */
export interface StaticProperties {
  /** What to open it with. */
  readonly ordinal: number;
  /** The adapter behind it. */
  readonly adapter: AdapterInfo;
  /** The limits that a device with the adapter's own would have. */
  readonly limits: DeviceLimits;
}

/** The state of a device, for a bug report. */
export interface DebugInfo {
  /** `driver:ordinal:id`. */
  readonly name: string;
  /** The adapter behind it. */
  readonly adapter: AdapterInfo;
  /** Its limits. */
  readonly limits: DeviceLimits;
  /** Its memory, pool by pool. */
  readonly memory: MemoryReport;
  /** What its runner has done. */
  readonly stats: RunnerStats;
  /** The sequence number of the last recorded work. */
  readonly recordedSeq: number;
  /** Whether everything recorded is done. */
  readonly isIdle: boolean;
  /** The node that the merge buffer holds, in words; null for none. */
  readonly mergeBuffer: string | null;
  /** Bytes of the merge buffer. */
  readonly mergeBufferCapacity: number;
  /** Constants that contexts share. */
  readonly constantCount: number;
  /** The pool that the next slab will get. */
  readonly nextPoolId: number;
}

/** Why a device is gone. */
export interface DeviceLostInfo {
  /** `destroyed` after {@link Device.destroy}; otherwise as the driver says. */
  readonly reason: string;
  /** More words. */
  readonly message: string;
}

/** Where a node's bytes are: the same on every run, driver and browser. */
export interface BufferLoc {
  /** The pool. */
  readonly poolId: number;
  /** Bytes from the start of the pool. */
  readonly offset: number;
}

/** What linking a code would allocate. */
export interface Forecast {
  /** Labels of the nodes that it would create. */
  readonly nodes: readonly string[];
  /** The sizes of the slabs that it would create, in bytes, padding included. */
  readonly slabSizesBytes: readonly number[];
  /** Bytes of all slabs of the device after it. */
  readonly inUseAfterBytes: number;
  /** What the device may use; undefined where it has no bound. */
  readonly budgetBytes: number | undefined;
  /** Bytes of the new slabs. */
  readonly sizeBytes: number;
  /** Whether the slabs are within the budget. Heaps may need more: a slab needs a gap of its size. */
  readonly isWithinBudget: boolean;
}

/** A forecast as the wasm module gives it. @internal */
export interface RawForecast {
  readonly nodes: string[];
  readonly slabSizesBytes: number[];
  readonly inUseAfterBytes: number;
  readonly budgetBytes: number | null;
}
