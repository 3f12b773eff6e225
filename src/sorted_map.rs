//! A map as a sorted vector.
//!
//! Pools, nodes and waiters are named by numbers that grow, so new entries go to the end; copies are one allocation;
//! and one small piece of code serves every map, which the web build's size shows.

use std::fmt;

/// A map whose entries lie in one vector, by key.
#[derive(Clone, PartialEq, Eq)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K: Ord, V> SortedMap<K, V> {
    /// An empty map.
    pub const fn new() -> Self {
        Self { entries: Vec::new() }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn find(&self, key: &K) -> Result<usize, usize> {
        let (mut from, mut to) = (0, self.entries.len());
        // Most new keys go to the end.
        let mut middle = to.saturating_sub(1);
        while from < to {
            if self.entries[middle].0 < *key {
                from = middle + 1;
            } else {
                to = middle;
            }
            middle = (from + to) / 2;
        }
        match self.entries.get(from) {
            Some((known, _)) if known == key => Ok(from),
            _ => Err(from),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.find(key).ok().map(|index| &self.entries[index].1)
    }

    /// The value of a key, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.find(key).ok().map(|index| &mut self.entries[index].1)
    }

    /// Whether there is an entry of that key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// Sets the value of a key; gives the one that it had.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(index) => Some(std::mem::replace(&mut self.entries[index].1, value)),
            Err(index) => {
                self.entries.insert(index, (key, value));
                None
            }
        }
    }

    /// Takes an entry out.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.find(key).ok().map(|index| self.entries.remove(index).1)
    }

    /// The entries, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The values, by key.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Keeps the entries that match.
    pub(crate) fn retain(&mut self, mut matches: impl FnMut(&K, &V) -> bool) {
        self.entries.retain(|(key, value)| matches(key, value));
    }
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self { entries: Vec::new() }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SortedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.entries.fmt(f)
    }
}

impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = Self::new();
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_behaves_as_a_map() {
        let mut map: SortedMap<u32, &str> = [(5, "e"), (1, "a"), (9, "i")].into_iter().collect();
        assert_eq!(map.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [1, 5, 9]);
        assert_eq!(map.insert(5, "E"), Some("e"));
        assert_eq!(map.insert(3, "c"), None);
        assert_eq!((map.get(&3), map.get(&4), map.len()), (Some(&"c"), None, 4));
        assert_eq!(map.remove(&1), Some("a"));
        assert_eq!(map.remove(&1), None);
        map.retain(|key, _| *key < 9);
        assert_eq!(map.len(), 2);
        assert!(map.contains_key(&5) && !map.is_empty());
    }
}
