//! The protocol of lockstorm's adapters, versions 1 and 2 (docs/adapters.md). You need not change it.
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, mpsc};

/// What the program hosts. `hello_2`: what version 2 of the protocol adds to `hello`.
pub struct Library<L> {
    pub hello: Value,
    pub hello_2: Value,
    /// Makes the lock object that a question is about; the question has all that `open` said, too.
    pub made: fn(&Value) -> L,
    /// One question: true it succeeded, false it was refused, an error if the server may have executed it.
    pub answered: fn(&L, &Value) -> Result<bool, String>,
}

type Calls<L> = mpsc::Sender<(Value, Arc<L>)>;

fn joined(one: &Value, other: &Value) -> Value {
    let mut all = one.as_object().unwrap().clone();
    all.extend(other.as_object().unwrap().clone());
    Value::Object(all)
}

fn write(question: &Value, answer: Value) {
    println!("{}", joined(&answer, &json!({"id": question["id"]})));
}

fn outcome(done: Result<bool, String>) -> Value {
    match done {
        Ok(done) => json!({"outcome": if done { "ok" } else { "refused" }}),
        Err(reason) => json!({"outcome": "unknown", "error": reason}),
    }
}

/// A thread makes one call after the other, until there is nobody left who could ask it.
fn thread<L: Send + Sync + 'static>(
    answered: fn(&L, &Value) -> Result<bool, String>,
    busy: Busy,
) -> Calls<L> {
    let (calls, asked) = mpsc::channel::<(Value, Arc<L>)>();
    std::thread::spawn(move || {
        for (question, lock) in asked {
            let answer = outcome(answered(&lock, &question));
            busy.lock().unwrap().remove(&question["id"].as_u64());
            write(&question, answer);
        }
    });
    calls
}

type Busy = Arc<Mutex<HashSet<Option<u64>>>>; // calls under way, by the ids of their questions

pub fn serve<L: Send + Sync + 'static>(library: Library<L>) {
    let (mut opened, busy) = (json!({}), Busy::default());
    let (mut locks, mut threads) = (HashMap::new(), HashMap::new());
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let question: Value = serde_json::from_str(&line).expect("a question is a line of JSON");
        match question["op"].as_str().unwrap_or("") {
            "hello" if question["protocol"] == 1 => {
                write(
                    &question,
                    joined(&library.hello, &json!({"outcome": "ok", "protocol": 1})),
                );
            }
            "hello" => {
                let hello = joined(&library.hello, &library.hello_2);
                write(
                    &question,
                    joined(&hello, &json!({"outcome": "ok", "protocol": 2})),
                );
            }
            "open" => {
                opened = question.clone();
                write(&question, outcome(Ok(true)));
            }
            "cancel" => write(&question, outcome(Ok(false))), // a thread's call cannot be cancelled
            "forget" => {
                let quiet = busy.lock().unwrap().is_empty();
                if quiet {
                    locks.clear();
                    threads.clear();
                }
                write(&question, outcome(Ok(quiet)));
            }
            _ => {
                let (lock, number) = (question["lock"].as_u64(), question["thread"].as_u64());
                let lock = locks
                    .entry(lock)
                    .or_insert_with(|| Arc::new((library.made)(&joined(&opened, &question))));
                let calls = threads
                    .entry(number)
                    .or_insert_with(|| thread(library.answered, busy.clone()));
                busy.lock().unwrap().insert(question["id"].as_u64());
                calls
                    .send((question, lock.clone()))
                    .expect("a thread lives until it is forgotten");
            }
        }
    }
}
