//! Observers of all conversions on a thread, for `--dump-after-each-pattern`.

use super::PatternEvent;
use std::cell::RefCell;

type Observer = Box<dyn FnMut(&PatternEvent<'_, '_>)>;

thread_local! {
    static OBSERVER: RefCell<Option<Observer>> = const { RefCell::new(None) };
}

/// Calls `observer` after each successful pattern of every conversion that `body` runs on this thread. The IR is valid then, except
/// between patterns that rewrite ops together.
pub fn observe_conversions<T>(observer: impl FnMut(&PatternEvent<'_, '_>) + 'static, body: impl FnOnce() -> T) -> T {
    let before = OBSERVER.replace(Some(Box::new(observer)));
    let _restore = Restore(before);
    body()
}

/// Restores the previous observer, after a panic too.
struct Restore(Option<Observer>);

impl Drop for Restore {
    fn drop(&mut self) {
        OBSERVER.set(self.0.take());
    }
}

/// Whether an observer is attached.
pub(super) fn is_observed() -> bool {
    OBSERVER.with_borrow(Option::is_some)
}

pub(super) fn tell(event: &PatternEvent<'_, '_>) {
    // Taken out meanwhile: the observer may run a conversion itself.
    let Some(mut observer) = OBSERVER.take() else { return };
    observer(event);
    OBSERVER.with_borrow_mut(|slot| {
        slot.get_or_insert(observer);
    });
}
