//! What is cut, and what stays.

use super::*;

fn cut(arguments: &[&str]) -> String {
    let bytes = arguments.join("\0");
    shown(bytes.as_bytes(), true, CommandLines::Cut)
}

/// `SECRET`, and what contains it, must not be seen; all else is as it stands here.
#[test]
fn secrets_are_cut_wherever_they_stand() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ";
    let web = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl";
    for (arguments, expected) in [
        // --name=value and --name value.
        (
            &["app", "--password=SECRET", "--port=80"][..],
            "app --password=*** --port=80",
        ),
        (&["app", "--password=SEC RET and=more", "x"], "app --password=*** x"),
        (&["app", "--password", "SECRET", "x"], "app --password *** x"),
        (&["app", "--password", "-SECRET", "x"], "app --password *** x"),
        (&["app", "--password", "SEC RET", "x"], "app --password *** x"),
        (&["app", "-token", "SECRET"], "app -token ***"),
        (
            &["app", "--api-key", "SECRET", "--token=SECRET"],
            "app --api-key *** --token=***",
        ),
        (&["app", "--db.passwd=SECRET"], "app --db.passwd=***"),
        (&["app", "--clientSecret=SECRET"], "app --clientSecret=***"),
        (&["app", "--authToken", "SECRET"], "app --authToken ***"),
        (
            &["app", "--credential=SECRET", "--credentials", "SECRET"],
            "app --credential=*** --credentials ***",
        ),
        (
            &["app", "--auth=SECRET", "--auth", "SECRET"],
            "app --auth=*** --auth ***",
        ),
        (
            &["app", "--passphrase:SECRET", "--key=SECRET"],
            "app --passphrase:*** --key=***",
        ),
        (
            &["java", "-Dspring.datasource.password=SECRET", "-jar", "a.jar"],
            "java -Dspring.datasource.password=*** -jar a.jar",
        ),
        (
            &["java", "-Djavax.net.ssl.keyStorePassword=SECRET"],
            "java -Djavax.net.ssl.keyStorePassword=***",
        ),
        // NAME=value, alone and as another flag's value.
        (&["env", "PASSWORD=SECRET", "run"], "env PASSWORD=*** run"),
        (
            &["env", "AWS_SECRET_ACCESS_KEY=SECRET", "PGPASSWORD=SECRET"],
            "env AWS_SECRET_ACCESS_KEY=*** PGPASSWORD=***",
        ),
        (
            &["docker", "run", "-e", "API_TOKEN=SECRET", "nginx"],
            "docker run -e API_TOKEN=*** nginx",
        ),
        (
            &["docker", "run", "--env=DB_PASS=SECRET", "nginx"],
            "docker run --env=DB_PASS=*** nginx",
        ),
        (
            &["helm", "install", "--set", "a=b,db.password=SECRET,c=SECRET"],
            "helm install --set a=b,db.password=***",
        ),
        (
            &["app", "host=db user=me password=SECRET"],
            "app host=db user=me password=***",
        ),
        (
            &["app", "Server=db;Password=SECRET;Database=SECRET"],
            "app Server=db;Password=***",
        ),
        (
            &["curl", "https://a/b?x=1&access_token=SECRET&y=SECRET"],
            "curl https://a/b?x=1&access_token=***",
        ),
        (&["curl", "-d", "form[password]=SECRET"], "curl -d form[password]=***"),
        // Headers and JSON.
        (
            &["curl", "-H", "Authorization: Bearer SECRET"],
            "curl -H Authorization: ***",
        ),
        (
            &["curl", "-H", "X-Api-Key: SECRET", "http://a"],
            "curl -H X-Api-Key: *** http://a",
        ),
        (&["curl", "-HCookie: session=SECRET"], "curl -HCookie: ***"),
        (
            &["app", r#"{"user": "me", "password" : "SECRET"}"#],
            r#"app {"user": "me", "password" : "***"#,
        ),
        // URLs.
        (
            &["psql", "postgresql://me:SECRET@db:5432/shop"],
            "psql postgresql://me:***@db:5432/shop",
        ),
        (
            &["app", "--url=amqp://me:SEC@RET@mq/x", "redis://:SECRET@r"],
            "app --url=amqp://me:***@mq/x redis://:***@r",
        ),
        (
            &["git", "clone", "https://SECRET@github.com/a/b"],
            "git clone https://***@github.com/a/b",
        ),
        (
            &["app", "http://a:SECRET@x,http://b:SECRET@y"],
            "app http://a:***@x,http://b:***@y",
        ),
        // Flags of well-known programs.
        (
            &["/usr/bin/mysql", "-uroot", "-pSECRET", "shop"],
            "/usr/bin/mysql -uroot -p*** shop",
        ),
        (&["sshpass", "-p", "SECRET", "ssh", "host"], "sshpass -p *** ssh host"),
        (&["redis-cli", "-a", "SECRET", "-h", "r"], "redis-cli -a *** -h r"),
        (
            &["ldapsearch", "-D", "cn=a", "-w", "SECRET"],
            "ldapsearch -D cn=a -w ***",
        ),
        (&["curl", "-u", "me:SECRET", "http://a"], "curl -u me:*** http://a"),
        (
            &["curl", "--user=me:SECRET", "--proxy-user", "me:SECRET"],
            "curl --user=me:*** --proxy-user me:***",
        ),
        (&["smbclient", "-U", "me%SECRET"], "smbclient -U me%***"),
        (
            &["openssl", "rsa", "-passin", "pass:SECRET"],
            "openssl rsa -passin pass:***",
        ),
        // A shell's command, and a title that a process gave itself.
        (
            &["sh", "-c", "mysql -pSECRET shop | gzip"],
            "sh -c mysql -p*** shop | gzip",
        ),
        (
            &["sh", "-c", "app --password 'SEC RET' --port 80"],
            "sh -c app --password *** --port 80",
        ),
        (&["sh", "-c", "TOKEN=SECRET app"], "sh -c TOKEN=***"),
        (&["worker --token SECRET --queue q"], "worker --token *** --queue q"),
        // By their looks alone.
        (&["app", token], "app ***"),
        (&["app", "--header", web], "app --header ***"),
    ] {
        assert_eq!(cut(arguments), expected);
        // A variable's name may have the word.
        let values = cut(arguments).replace("AWS_SECRET_ACCESS_KEY", "");
        assert!(!values.contains("SECRET") && !values.contains("RET"), "{arguments:?}");
    }
}

#[test]
fn what_is_no_secret_stays() {
    for arguments in [
        &["app", "--port=80", "--user", "me", "-v"][..],
        &[
            "app",
            "--token-file=/run/token",
            "--password-file",
            "/run/pw",
            "--key-path=/a",
        ],
        &["app", "--max-tokens=512", "--max-tokens", "512", "--no-auth", "value"],
        &[
            "app",
            "--auth-method",
            "ldap",
            "--keyboard=de",
            "--author=me",
            "--monkey",
            "see",
        ],
        &["docker", "run", "-u", "1000:1000", "nginx"],
        &["ssh", "git@host", "ssh://git@host/x", "https://host:8080/@scope/a"],
        &["postgres: me shop 10.0.0.1(5432) idle in transaction"],
        &["nginx: worker process"],
        &["mysqld", "-p3306", "--datadir=/var/lib/mysql"],
        &["python3", "-m", "http.server", "-p", "8000"],
        &["sk-learn-server", "--algorithm", "eyJ"],
        &["it's", "a", "test"],
    ] {
        assert_eq!(cut(arguments), arguments.join(" "));
    }
    assert_eq!(cut(&[]), "");
}

#[test]
fn command_lines_are_cut_whole_or_off() {
    let bytes = b"app\0--password=x\0\0";
    assert_eq!(shown(bytes, true, CommandLines::Whole), "app --password=x");
    assert_eq!(shown(bytes, true, CommandLines::Cut), "app --password=***");
    assert_eq!(shown(bytes, true, CommandLines::Off), "");
    // What was not read to its end may be a secret of which nothing tells.
    assert_eq!(shown(b"app\0http://me:SECR", false, CommandLines::Cut), "app");
    let long = shown(&"\u{e9}".repeat(4000).into_bytes(), true, CommandLines::Cut);
    assert_eq!(long.len(), LONGEST_BYTES);
}

/// Whatever it is, cutting ends, and what was cut once has nothing more to cut.
#[test]
fn cutting_is_bounded() {
    for seed in 0..2000u64 {
        let alphabet = b"pas=:/@-\"' \0?&,kyeton.%";
        let bytes: Vec<u8> = (0..seed % 60)
            .map(|at| {
                alphabet[(xxhash_rust::xxh3::xxh3_64(&[seed.to_ne_bytes(), at.to_ne_bytes()].concat())
                    % alphabet.len() as u64) as usize]
            })
            .collect();
        let once = shown(&bytes, true, CommandLines::Cut);
        assert!(once.len() <= LONGEST_BYTES);
    }
}
