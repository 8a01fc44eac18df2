//! Until when our certificates hold, told at each scrape.

use std::{fmt, sync::Arc};

use ayatori_certs::CertSource;
use prometheus_client::{collector::Collector, encoding::DescriptorEncoder, metrics::MetricType};

/// The certificates, by what they serve.
#[derive(Debug)]
pub(super) struct Expiry(pub(super) Vec<(&'static str, Arc<dyn CertSource>)>);

impl Collector for Expiry {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (name, help) = (
            "certificate_not_after_timestamp_seconds",
            "When the serving certificate of the webhook and of the metrics ends.",
        );
        let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (serves, source) in &self.0 {
            if let Some(validity) = source.validity() {
                metric.encode_family(&[("serves", *serves)])?.encode_gauge(&validity.not_after.as_second())?;
            }
        }
        Ok(())
    }
}
