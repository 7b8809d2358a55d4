package lockstorm;

import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** What is done to the rows of users. Without @Transactional each statement is a transaction of its own. */
@Service
public class Users {
    private final JdbcTemplate db;

    public Users(JdbcTemplate db) {
        this.db = db;
    }

    public int read() {
        int credits = db.queryForObject("SELECT credits FROM users WHERE id = 1", Integer.class);
        if (credits < 1) throw new Refused("none is left");
        return credits;
    }

    public void write(int credits) {
        db.update("UPDATE users SET credits = ? WHERE id = 1", credits);
    }

    /** Changes nothing if somebody else has written since `from` was read. */
    public void change(int from, int to) {
        int rows = db.update("UPDATE users SET credits = ? WHERE id = 1 AND credits = ?", to, from);
        if (rows == 0) throw new Refused("somebody else has changed it");
    }

    /** Needs a lock: two at once read the same number. */
    @Transactional
    public void spend() {
        write(read() - 1);
    }

    /** Needs no lock: the second one finds another number than it has read, and changes nothing. */
    @Transactional
    public void spendIfUnchanged() {
        int credits = read();
        change(credits, credits - 1);
    }

    @Transactional
    public void move(int giver, int taker) {
        db.queryForList("SELECT id FROM users WHERE id IN (?, ?) ORDER BY id FOR UPDATE", giver, taker);
        db.update("UPDATE users SET credits = credits - 1 WHERE id = ?", giver);
        db.update("UPDATE users SET credits = credits + 1 WHERE id = ?", taker);
    }
}
