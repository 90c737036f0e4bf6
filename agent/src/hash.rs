//! Maps for what is looked up for every sample and frame.

/// With a hash for short keys; its seed is another one in every process.
pub(crate) type FastMap<K, V> = std::collections::HashMap<K, V, foldhash::fast::RandomState>;
