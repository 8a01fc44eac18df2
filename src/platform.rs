//! What the platform asks for: one file that webhooks and controllers read alike, and flags that override it.
//! `docs/configuration.md` tells every key.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};
use ayatori_crds::rules::{Policy, policy};
use clap::{Args, ValueEnum};
use serde::Deserialize;

/// The file and the flags.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PlatformFlags {
    /// The YAML file with the platform's settings. Flags override it.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The seconds that a finished Job is kept where it names none (`ttl.default`).
    #[arg(long, value_name = "SECONDS")]
    ttl_default: Option<i32>,
    /// The most seconds that a finished Job may ask to be kept (`ttl.maximum`).
    #[arg(long, value_name = "SECONDS")]
    ttl_maximum: Option<i32>,
    /// Whether every Job must say how long it is kept once it is finished (`ttl.required`).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    ttl_required: Option<bool>,
    /// Whether images must be named by digest (`image.requireDigest`).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    image_require_digest: Option<bool>,
    /// Whether Secrets and ConfigMaps that a Job names are looked at: that they exist at its creation, and their keys (never
    /// a value) before its acceptance. Off: no right to get them is needed, and what is missing shows once the task is to
    /// start (`referenceChecks`).
    #[arg(long, value_enum)]
    reference_checks: Option<Switch>,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// The file, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct File {
    ttl: policy::TtlPolicy,
    image: policy::ImagePolicy,
    reference_checks: Option<bool>,
}

/// What the platform asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Platform {
    /// What it asks of every Job.
    pub(crate) policy: Policy,
    /// Whether it is looked up if what a Job names exists.
    pub(crate) reference_checks: bool,
}

impl PlatformFlags {
    /// Reads the file, if one is named, and puts the flags over it.
    ///
    /// # Errors
    /// A file that cannot be read, a key that is unknown or has a bad value, settings that contradict each other.
    pub(crate) fn platform(&self) -> Result<Platform> {
        let file = match &self.config {
            None => File::default(),
            Some(path) => {
                let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
                parse(&text).with_context(|| format!("cannot use {}", path.display()))?
            }
        };
        self.over(file)
    }

    fn over(&self, file: File) -> Result<Platform> {
        let File { mut ttl, mut image, reference_checks } = file;
        ttl.default = self.ttl_default.or(ttl.default);
        ttl.maximum = self.ttl_maximum.or(ttl.maximum);
        ttl.required = self.ttl_required.unwrap_or(ttl.required);
        image.require_digest = self.image_require_digest.unwrap_or(image.require_digest);
        let policy = Policy { ttl, image };
        policy.check().context("the platform's settings contradict each other")?;
        let switch = self.reference_checks.map(|switch| switch == Switch::On);
        Ok(Platform { policy, reference_checks: switch.or(reference_checks).unwrap_or(true) })
    }
}

/// The file's text. One without any key asks for nothing.
fn parse(text: &str) -> Result<File> {
    let mut path = String::new();
    let parsed = serde_saphyr::with_deserializer_from_str(text, |yaml| {
        serde_path_to_error::deserialize::<_, Option<File>>(yaml).map_err(|error| {
            path = error.path().to_string();
            error.into_inner()
        })
    });
    match parsed {
        Ok(file) => Ok(file.unwrap_or_default()),
        Err(error) if path.is_empty() || path == "." => Err(anyhow::anyhow!("{}", error.without_snippet())),
        Err(error) => Err(anyhow::anyhow!("{path}: {}", error.without_snippet())),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        platform: PlatformFlags,
    }

    fn flags(arguments: &[&str]) -> PlatformFlags {
        Line::parse_from([&["ayatori"], arguments].concat()).platform
    }

    fn platform(text: &str, arguments: &[&str]) -> Result<Platform> {
        flags(arguments).over(parse(text)?)
    }

    #[test]
    fn without_a_file_nothing_is_asked_for_and_references_are_looked_up() {
        let nothing = Platform { policy: Policy::default(), reference_checks: true };
        assert_eq!(flags(&[]).platform().unwrap(), nothing);
        for empty in ["", "# only words\n", "{}", "ttl: {}\n"] {
            assert_eq!(platform(empty, &[]).unwrap(), nothing, "{empty:?}");
        }
    }

    #[test]
    fn the_file_that_is_deployed_is_one_that_can_be_read() {
        assert_eq!(parse(include_str!("../deploy/base/config.yaml")).unwrap(), File::default());
    }

    #[test]
    fn the_example_in_the_documentation_sets_every_key() {
        let page = include_str!("../docs/configuration.md");
        let example = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
        let Platform { policy, reference_checks } = platform(example, &[]).unwrap();
        let asked = (policy.ttl.default, policy.ttl.maximum, policy.ttl.required, policy.image.require_digest);
        assert_eq!((asked, reference_checks), ((Some(86_400), Some(604_800), true, true), false));
    }

    #[test]
    fn flags_override_the_file() {
        let text =
            "ttl: {default: 10, maximum: 20, required: true}\nimage: {requireDigest: true}\nreferenceChecks: off";
        let changed = platform(
            text,
            &[
                "--ttl-default=30",
                "--ttl-maximum=40",
                "--ttl-required=false",
                "--image-require-digest=false",
                "--reference-checks=on",
            ],
        );
        let Platform { policy, reference_checks } = changed.unwrap();
        let asked = (policy.ttl.default, policy.ttl.maximum, policy.ttl.required, policy.image.require_digest);
        assert_eq!((asked, reference_checks), ((Some(30), Some(40), false, false), true));
        let plain = platform("", &["--ttl-required", "--image-require-digest"]).unwrap().policy;
        assert!(plain.ttl.required && plain.image.require_digest);
    }

    #[test]
    fn what_is_unknown_or_wrong_stops_the_start_with_its_path() {
        for (text, path) in [
            ("tll: {}", "tll: "),
            ("ttl: {maximun: 5}", "ttl.maximun: "),
            ("ttl: {maximum: soon}", "ttl.maximum: "),
            ("ttl: {maximum: 99999999999}", "ttl.maximum: "),
            ("ttl: {required: 3}", "ttl.required: "),
            ("image: {requireDigest: perhaps}", "image.requireDigest: "),
            ("image: [requireDigest]", "image"),
            ("referenceChecks: 7", "referenceChecks: "),
        ] {
            let error = format!("{:#}", platform(text, &[]).unwrap_err());
            assert!(error.starts_with(path), "{text}: {error}");
            assert!(!error.contains('\n'), "one line: {error}");
        }
        for text in ["ttl: {default: 1, default: 2}", "ttl: {", "---\nttl: {}\n---\nttl: {}\n", "- ttl"] {
            assert!(platform(text, &[]).is_err(), "{text}");
        }
    }

    #[test]
    fn settings_that_contradict_each_other_stop_the_start() {
        for (text, arguments, told) in [
            ("ttl: {default: 61, maximum: 60}", &[][..], "ttl.default is 61: it must be at most 60"),
            ("ttl: {maximum: 60}", &["--ttl-default=61"], "ttl.default is 61: it must be at most 60"),
            ("ttl: {default: -1}", &[], "ttl.default is -1: it must be 0 or more seconds"),
        ] {
            let error = format!("{:#}", platform(text, arguments).unwrap_err());
            assert!(error.contains(told), "{error}");
        }
        assert!(platform("ttl: {default: 61, maximum: 60}", &["--ttl-maximum=61"]).is_ok());
    }

    #[test]
    fn a_file_that_is_not_there_is_told_by_its_path() {
        let error = format!("{:#}", flags(&["--config", "/no/such/file.yaml"]).platform().unwrap_err());
        assert!(error.starts_with("cannot read /no/such/file.yaml: "), "{error}");
    }
}
