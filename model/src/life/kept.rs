//! Values that are kept once and then spoken of by number: a state of the world stays small and is hashed fast, although
//! it is made of whole API objects. And answers of pure functions, so that each question is asked once.

use std::{
    cmp::Ordering,
    collections::{BTreeSet, HashMap},
    fmt,
    hash::{Hash, Hasher},
    ops::Deref,
    sync::RwLock,
};

/// A value on a [`Shelf`]. Two are equal where their texts are.
pub(super) struct Kept<T: 'static>(&'static Numbered<T>);

struct Numbered<T> {
    number: u32,
    value: T,
}

impl<T> Clone for Kept<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Kept<T> {}

impl<T> Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

impl<T> PartialEq for Kept<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }
}

impl<T> Eq for Kept<T> {}

impl<T> PartialOrd for Kept<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Kept<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.number.cmp(&other.0.number)
    }
}

impl<T> Hash for Kept<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.number.hash(state);
    }
}

impl<T> fmt::Debug for Kept<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0.number)
    }
}

/// Values by their text. They live as long as the test's process: some thousand small objects.
pub(super) struct Shelf<T: 'static> {
    by_text: RwLock<HashMap<String, Kept<T>>>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { by_text: RwLock::default() }
    }
}

impl<T: Send + Sync> Shelf<T> {
    /// The value with that text, which says all of it.
    pub(super) fn keep(&self, text: String, value: T) -> Kept<T> {
        if let Some(known) = self.by_text.read().unwrap().get(&text) {
            return *known;
        }
        let mut all = self.by_text.write().unwrap();
        let number = u32::try_from(all.len()).unwrap();
        *all.entry(text).or_insert_with(|| Kept(Box::leak(Box::new(Numbered { number, value }))))
    }

    pub(super) fn len(&self) -> usize {
        self.by_text.read().unwrap().len()
    }

    /// What is said of each value, where something is.
    pub(super) fn map<A: Ord>(&self, of: impl Fn(&T) -> Option<A>) -> BTreeSet<A> {
        self.by_text.read().unwrap().values().filter_map(|kept| of(kept)).collect()
    }
}

/// What a pure function said.
pub(super) struct Answers<Q, A> {
    known: RwLock<HashMap<Q, A>>,
}

impl<Q, A> Default for Answers<Q, A> {
    fn default() -> Self {
        Self { known: RwLock::default() }
    }
}

impl<Q: Eq + Hash, A: Copy> Answers<Q, A> {
    pub(super) fn of(&self, question: Q, ask: impl FnOnce(&Q) -> A) -> A {
        if let Some(answer) = self.known.read().unwrap().get(&question) {
            return *answer;
        }
        let answer = ask(&question);
        self.known.write().unwrap().insert(question, answer);
        answer
    }

    pub(super) fn len(&self) -> usize {
        self.known.read().unwrap().len()
    }
}
