//! A lock library for lockstorm: change the five marked places. Build: cargo build --release
//! A guard that releases in `drop` is kept in MyLock from acquire to release; an async lock runs in one tokio Runtime.
mod lines;

use redis::{Client, Connection, RedisError, Script, cmd}; // 1. your library
use serde_json::{Value, json};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

// 3. A connection, and a lock object. The proxy of the trial listens at the nodes: connect to these addresses only.
static LINK: Mutex<Option<Connection>> = Mutex::new(None);

struct MyLock {
    path: String,
    key: String,
    lease_ms: u64,
    token: String,
}

fn made(question: &Value) -> MyLock {
    let mut random = [0; 16];
    std::io::Read::read_exact(
        &mut std::fs::File::open("/dev/urandom").unwrap(),
        &mut random,
    )
    .unwrap();
    MyLock {
        path: question["nodes"][0]["unix"].as_str().unwrap().into(),
        key: question["resource"].as_str().unwrap().into(),
        lease_ms: question["lease_ms"].as_u64().unwrap(),
        token: format!("{:x}", u128::from_ne_bytes(random)),
    }
}

impl MyLock {
    fn on_link<T>(
        &self,
        call: impl FnOnce(&mut Connection) -> Result<T, RedisError>,
    ) -> Result<T, RedisError> {
        let (mut link, second) = (LINK.lock().unwrap(), Duration::from_secs(1));
        if !link.as_ref().is_some_and(redis::ConnectionLike::is_open) {
            let fresh = Client::open(format!("redis+unix://{}", self.path))?
                .get_connection_with_timeout(second)?;
            fresh.set_read_timeout(Some(second))?;
            *link = Some(fresh);
        }
        let done = call(link.as_mut().unwrap());
        if done.is_err() {
            *link = None; // the answer may come later
        }
        done
    }

    fn taken(&self) -> Result<bool, RedisError> {
        let command = cmd("SET")
            .arg(&self.key)
            .arg(&self.token)
            .arg(&["NX", "PX"])
            .arg(self.lease_ms)
            .to_owned();
        Ok(self
            .on_link(|link| command.query::<Option<String>>(link))?
            .is_some())
    }

    fn if_ours(&self, call: &str) -> Result<bool, RedisError> {
        let script = Script::new(&format!(
            "return redis.call('GET', KEYS[1]) == ARGV[1] and {call} or 0"
        ));
        self.on_link(|link| {
            script
                .key(&self.key)
                .arg(&self.token)
                .arg(self.lease_ms)
                .invoke::<bool>(link)
        })
    }
}

// 4. One question: true it succeeded, false it was refused. 5. After an error the server may have executed it.
fn answered(lock: &MyLock, question: &Value) -> Result<bool, String> {
    let wait = question["wait_ms"].as_u64().map(Duration::from_millis); // none: as long as it takes
    let began = Instant::now();
    let done = match question["op"].as_str().unwrap() {
        "acquire" => loop {
            let done = lock.taken();
            let left = wait.map_or(Duration::MAX, |wait| wait.saturating_sub(began.elapsed()));
            if done.is_err() || matches!(done, Ok(true)) || left.is_zero() {
                break done;
            }
            sleep(left.min(Duration::from_millis(50)));
        },
        "release" => lock.if_ours("redis.call('DEL', KEYS[1])"),
        "renew" => lock.if_ours("redis.call('PEXPIRE', KEYS[1], ARGV[2])"),
        _ => lock.if_ours("1"),
    };
    done.map_err(|error| error.to_string())
}

// 2. Its description; docs/adapters.md has all keys. The second part is for calls of several threads about several locks.
fn main() {
    let forms =
        json!([{"form": "acquire", "wait": ["none", "time", "forever"], "lease": ["given"]}]);
    lines::serve(lines::Library {
        hello: json!({"name": "my lock", "lease": true, "operations": ["renew", "is_held"]}),
        hello_2: json!({"threads": 8, "owner": "object", "of_object": ["lease_ms"], "forms": forms, "lease_key": "{resource}"}),
        made,
        answered,
    });
}
