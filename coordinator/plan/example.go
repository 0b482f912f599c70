package plan

// Example is a description to start from; a test reads it.
const Example = `# A cluster for busbw plan. A number that is not known exactly is [low, high]:
# predictions carry the interval on. Rates are GB/s (1e9 bytes), each way.
name: H100, 8 x NDR
nodes: 64
gpus_per_node: 8
nics_per_node: 8          # default: one a GPU

nvlink:
  domain: 8               # GPUs that reach each other without a NIC; default: those of a node
  gb_per_s: 450           # of one GPU
  efficiency: [0.76, 0.82] # of gb_per_s, by collectives; this is the default
  latency_us: [0.6, 4]    # of a message; default

nic:
  gb_per_s: 50            # of one NIC
  efficiency: [0.73, 0.98] # default
  latency_us: [2.7, 14]   # default
  rail_optimized: true    # NICs of one number share a leaf; else those of a node do

leaf:
  nodes: 32               # on one leaf (with rails: on one group of leaves)
  oversubscription: 2     # NICs' bandwidth over that of the uplinks; default 1
  latency_us: [0.5, 2]    # more, for messages between leaves

# combine_gb_per_s: 1000  # how fast a GPU reduces what it receives; absent: at no cost
# chunk_bytes: 524288     # largest message
# channels: 1             # absent: 1, but best tries 4 as well
# sharp: false            # reductions in switches are not modelled
`
